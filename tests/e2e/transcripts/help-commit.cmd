0 berth commit --help
