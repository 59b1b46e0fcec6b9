0 berth node save --help
