0 berth node check --help
