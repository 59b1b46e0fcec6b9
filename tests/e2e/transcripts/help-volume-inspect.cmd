0 berth volume inspect --help
