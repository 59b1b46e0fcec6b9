0 berth node labels --help
