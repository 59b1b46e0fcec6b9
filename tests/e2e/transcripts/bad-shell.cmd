1 berth completion tcsh
