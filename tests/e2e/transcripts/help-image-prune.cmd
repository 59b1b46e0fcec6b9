0 berth image prune --help
