0 berth container prune --help
