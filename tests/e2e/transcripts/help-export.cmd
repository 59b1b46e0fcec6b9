0 berth export --help
