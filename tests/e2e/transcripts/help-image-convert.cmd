0 berth image convert --help
