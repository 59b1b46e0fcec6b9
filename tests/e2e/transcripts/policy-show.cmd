0 berth --config-dir $WORK/none policy show
