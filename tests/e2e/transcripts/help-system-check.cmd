0 berth system check --help
