1 berth --config-dir $WORK/none policy check
