0 berth login --help
