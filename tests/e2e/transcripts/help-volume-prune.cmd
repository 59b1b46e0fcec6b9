0 berth volume prune --help
