0 berth policy import --help
