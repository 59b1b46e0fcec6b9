0 berth doctor --help
