0 berth kill --help
