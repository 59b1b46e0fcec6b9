0 berth cp --help
