0 berth volume ls --help
