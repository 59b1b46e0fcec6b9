125 berth doctor gpus
