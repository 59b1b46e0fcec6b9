0 berth images --help
