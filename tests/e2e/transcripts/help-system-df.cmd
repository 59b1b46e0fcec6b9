0 berth system df --help
