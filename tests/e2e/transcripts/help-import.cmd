0 berth import --help
