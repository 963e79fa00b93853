-- What will come to flights.flights, a day at a time: from @drift on as another provider sends it. Carriers have the
-- codes of the ICAO in the place of the IATA's, times are UTC in the place of New York's, distances kilometres.
CREATE OR REPLACE TABLE flights.coming AS
SELECT * REPLACE (
  IF(scheduled_departure < @drift, carrier, CASE carrier
    WHEN 'UA' THEN 'UAL' WHEN 'B6' THEN 'JBU' WHEN 'EV' THEN 'ASQ' WHEN 'DL' THEN 'DAL' WHEN 'AA' THEN 'AAL'
    WHEN 'MQ' THEN 'ENY' WHEN 'US' THEN 'AWE' WHEN '9E' THEN 'FLG' WHEN 'WN' THEN 'SWA' WHEN 'VX' THEN 'VRD'
    WHEN 'FL' THEN 'TRS' WHEN 'AS' THEN 'ASA' WHEN 'F9' THEN 'FFT' WHEN 'YV' THEN 'ASH' WHEN 'HA' THEN 'HAL'
    WHEN 'OO' THEN 'SKW' ELSE carrier END) AS carrier,
  IF(scheduled_departure < @drift, hour, MOD(hour + 5, 24)) AS hour,
  IF(scheduled_departure < @drift, sched_arr_time, MOD(sched_arr_time + 500, 2400)) AS sched_arr_time,
  IF(scheduled_departure < @drift, distance, CAST(distance * 1.609 AS INT64)) AS distance
)
FROM flights.flights
