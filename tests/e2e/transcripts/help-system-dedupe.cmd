0 berth system dedupe --help
