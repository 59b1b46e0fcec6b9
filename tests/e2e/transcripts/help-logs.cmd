0 berth logs --help
