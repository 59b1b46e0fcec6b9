0 berth inspect --help
