0 berth rm -f nothing
