0 berth push --help
