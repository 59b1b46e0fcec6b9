125 berth gpu
