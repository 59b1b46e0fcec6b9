0 berth image ls --help
