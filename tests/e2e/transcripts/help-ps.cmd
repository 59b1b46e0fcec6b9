0 berth ps --help
