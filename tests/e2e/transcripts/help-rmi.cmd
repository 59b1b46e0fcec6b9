0 berth rmi --help
