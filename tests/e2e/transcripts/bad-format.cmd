1 berth images --format xml
