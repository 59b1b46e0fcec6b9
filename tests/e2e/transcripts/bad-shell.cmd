125 berth completion tcsh
