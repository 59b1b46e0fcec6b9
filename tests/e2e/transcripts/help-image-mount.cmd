0 berth image mount --help
