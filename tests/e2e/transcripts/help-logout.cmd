0 berth logout --help
