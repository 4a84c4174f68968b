-- The running example of Wang et al. 2018 (Table 2): seven individuals, ten records.
CREATE TABLE patients (name VARCHAR, gender VARCHAR, age INT, postcode INT, disease VARCHAR) AS VALUES
  ('Mike', 'M', 36, 10085, 'Hypertension'),
  ('Mike', 'M', 36, 10085, 'Heart'),
  ('Lily', 'F', 37, 10076, 'Cancer'),
  ('Tim',  'M', 36, 10086, 'Hypertension'),
  ('Jane', 'F', 33, 10087, 'Hypertension'),
  ('Jane', 'F', 33, 10087, 'Diabetes'),
  ('Tina', 'F', 38, 10077, 'HIV'),
  ('Ella', 'F', 34, 10070, 'Leukaemia'),
  ('Ella', 'F', 34, 10070, 'Heart'),
  ('Lucy', 'F', 33, 10073, 'Syphilis')
