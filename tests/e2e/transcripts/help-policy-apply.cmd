0 berth policy apply --help
