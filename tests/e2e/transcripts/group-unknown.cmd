125 berth image lss
