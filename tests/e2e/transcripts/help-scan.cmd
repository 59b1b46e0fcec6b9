0 berth scan --help
