125 berth runn
