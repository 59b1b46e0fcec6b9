0 berth volume create --help
