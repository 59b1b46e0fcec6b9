0 berth rm --help
