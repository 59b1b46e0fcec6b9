0 berth images
