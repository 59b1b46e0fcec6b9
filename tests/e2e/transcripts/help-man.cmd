0 berth man --help
