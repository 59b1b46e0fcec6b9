125 berth contianer ls
