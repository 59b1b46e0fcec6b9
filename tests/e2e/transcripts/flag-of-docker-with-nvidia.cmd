125 berth run --runtime=nvidia debian nvidia-smi
