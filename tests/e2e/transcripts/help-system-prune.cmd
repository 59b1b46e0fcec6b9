0 berth system prune --help
