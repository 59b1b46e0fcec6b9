0 berth info --help
