0 berth tag --help
