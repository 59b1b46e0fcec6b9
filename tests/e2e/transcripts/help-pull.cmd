0 berth pull --help
