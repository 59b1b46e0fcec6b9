0 berth image unmount --help
