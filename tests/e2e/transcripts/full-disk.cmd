1 berth images >/dev/full
