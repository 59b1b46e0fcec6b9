0 berth --help
